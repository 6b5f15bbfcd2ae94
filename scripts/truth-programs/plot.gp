set terminal svg
set output 'surface.svg'
set isosamples 500
set pm3d
splot [-4:4] [-4:4] sin(x * x + y * y) * exp(-0.1 * (x * x + y * y))
