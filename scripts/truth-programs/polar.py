"""A table is read, grouped and joined, by polars."""
import sys
import polars
table = polars.read_csv(sys.argv[1])
print(table.group_by("group").agg(polars.col("value").mean())["value"].sort().round(6).sum())
print(table.join(table.select("name", "id").head(500), on="name").shape)
