import numpy
chance = numpy.random.default_rng(7); a = chance.random(2_000_000)
for _ in range(3): a = a[numpy.argsort(a)] + chance.random(len(a))
print(a.sum())
