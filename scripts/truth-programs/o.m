a = mod((1:6000000) * 7919, 104729);
b = sort(a);
printf("%d %d\n", sum(b(1:1000:end)), sum(cumsum(a)(1:100000:end)));
m = reshape(a(1:810000), 900, 900);
printf("%d\n", sum(sum(m * m)));
