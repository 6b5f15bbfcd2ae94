local t, s = {}, 0
for i = 1, 300000 do t[i] = { key = i * 7919 % 300007, name = "row " .. i } end
table.sort(t, function(a, b) return a.key < b.key end)
for _, row in ipairs(t) do s = (s * 31 + #row.name + row.key) % 1000003 end
print(s)
