"""A table is read, grouped and joined, by pandas."""
import sys
import pandas
table = pandas.read_csv(sys.argv[1])
print(table.groupby("group").value.mean().round(6).sum())
print(table.merge(table[["name", "id"]].head(500), on="name").shape)
