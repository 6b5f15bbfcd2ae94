{ n[$1]++; s[$2 % 200000] += $1 }
END { for (i in s) t += s[i]; print length(n), t }
