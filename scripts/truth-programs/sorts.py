import numpy, sys
chance = numpy.random.default_rng(7); a = chance.random(int(sys.argv[1]))
for _ in range(3): a = a[numpy.argsort(a)] + chance.random(len(a))
print(a.sum())
