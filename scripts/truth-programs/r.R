x <- (1:600000 * 7919) %% 104729
d <- data.frame(g = x %% 50, v = x)
print(aggregate(v ~ g, d, mean)[1:5, ])
print(sum(sort(x)[seq(1, 600000, 1000)]))
l <- lapply(1:80000, function(i) c(i, i))
print(sum(sapply(l, sum)))
