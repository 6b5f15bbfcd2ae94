(define v (make-vector 500000 0))
(let loop ((i 0)) (when (< i 500000) (vector-set! v i (list i (number->string i))) (loop (+ i 1))))
(display (apply + (map car (vector->list v))))
(newline)
