let x = 7, s = 0; const m = new Map();
for (let i = 0; i < 500000; i++) { x = (x * 1103515245 + 12345) % 2147483648; m.set(x % 200000, (m.get(x % 200000) || '') + 'v' + i); }
for (const k of [...m.keys()].sort((a, b) => a - b)) s = (s * 31 + m.get(k).length) % 1000003;
console.log(s);
