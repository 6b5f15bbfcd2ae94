srand 7;
$h{int rand 300000} .= "entry $_ " for 1..800000;
$s += length $h{$_} for sort keys %h;
print $s;
