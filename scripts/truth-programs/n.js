// Objects that all live, in a list and a tree of maps.
const count = Number(process.argv[2]), people = [], cities = new Map(); let x = 7, sum = 0;
for (let i = 0; i < count; i++) {
  x = (x * 1103515245 + 12345) % 2147483648;
  const person = { id: i, name: 'name ' + x, city: x % 997, friends: [x % (i + 1), (x >> 7) % (i + 1)] };
  people.push(person);
  if (!cities.has(person.city)) cities.set(person.city, []);
  cities.get(person.city).push(person);
}
for (let r = 0; r < 12; r++) for (const city of cities.values()) for (const p of city) sum = (sum * 31 + p.name.length + people[p.friends[r % 2]].id) % 1000003;
console.log(sum);
