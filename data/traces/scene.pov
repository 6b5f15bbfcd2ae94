#version 3.7;
global_settings { assumed_gamma 1.0 }
camera { location <0,2,-6> look_at <0,0.8,0> }
light_source { <5,8,-5> rgb 1 }
light_source { <-4,3,-3> rgb 0.4 }
plane { y,0 pigment { checker rgb 1 rgb 0.2 } finish { reflection 0.25 } }
#declare R = seed(7);
#for (I,0,24)
 sphere { <rand(R)*6-3, rand(R)*2+0.3, rand(R)*5-1>, 0.25+rand(R)*0.3 pigment { rgb <rand(R),rand(R),rand(R)> } finish { phong 0.8 reflection 0.2 } normal { bumps 0.3 scale 0.1 } }
#end
torus { 1.2,0.3 translate y*1.5 texture { pigment { marble turbulence 0.8 } } }
cone { <2,0,2>,0.8,<2,2,2>,0 pigment { wood } }
superellipsoid { <0.4,0.4> scale 0.6 translate <-2,0.6,1> pigment { granite } }
