(define (f x) "doc \n \"q\"" `(a ,x ,@(list 1 2.5 -3e4) . z)) ; comment
#t #f nil (quote x) :key
