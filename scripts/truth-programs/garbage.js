// A few megabytes live; what else is made lives for a moment.
const rounds = Number(process.argv[2]), ring = new Array(64); let sum = 0;
for (let r = 0; r < rounds; r++) {
  const rows = [];
  for (let i = 0; i < 400; i++) rows.push({ key: 'k' + (r * 400 + i), values: [i, r, i ^ r, i + r], more: { left: i, right: r } });
  sum = (sum + rows.map(row => row.key + row.values.join()).join('').length) % 1000003;
  ring[r % 64] = rows;
}
console.log(sum, ring.length);
