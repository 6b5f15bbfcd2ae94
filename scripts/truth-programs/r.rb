h = {}
400000.times { |i| (h[i * 7919 % 200003] ||= []) << "value #{i}" }
puts h.keys.sort.sum { |k| h[k].sum(&:size) }
