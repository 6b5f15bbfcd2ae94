<?php
for ($i = 0; $i < 1500000; $i++) $h[$i * 7919 % 400009][] = $i;
ksort($h);
$s = 0;
foreach ($h as $k => $v) $s = ($s * 31 + count($v) + $k) % 1000003;
echo $s;
