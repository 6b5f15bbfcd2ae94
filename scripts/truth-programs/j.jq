[group_by(.group)[] | { n: length, v: (map(.value) | add) }] | length
