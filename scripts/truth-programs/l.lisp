(let ((h (make-hash-table :test (quote equal))))
  (dotimes (i 700000) (setf (gethash (format nil "~a" i) h) (list i i)))
  (print (loop for v being the hash-values of h sum (car v))))
