;; The part of the standard library that is written in Lisp. Names that begin with % are not visible to programs.

;; Lists

(define (identity value) value)

(define (%map-one procedure items)
  (let loop ((items items) (done '()))
    (if (null? items)
        (reverse done)
        (loop (cdr items) (cons (procedure (car items)) done)))))

(define (map procedure items . more)
  (if (null? more)
      (%map-one procedure items)
      (let loop ((lists (cons items more)) (done '()))
        (if (any null? lists)
            (reverse done)
            (loop (%map-one cdr lists)
                  (cons (apply procedure (%map-one car lists)) done))))))

(define (for-each procedure items)
  (unless (null? items)
    (procedure (car items))
    (for-each procedure (cdr items))))

(define (filter keep? items)
  (let loop ((items items) (done '()))
    (cond ((null? items) (reverse done))
          ((keep? (car items)) (loop (cdr items) (cons (car items) done)))
          (else (loop (cdr items) done)))))

(define (reduce procedure start items)
  (if (null? items)
      start
      (reduce procedure (procedure start (car items)) (cdr items))))

(define (any test items)
  (and (not (null? items))
       (or (test (car items)) (any test (cdr items)))))

(define (every test items)
  (or (null? items)
      (and (test (car items)) (every test (cdr items)))))

(define (find test items)
  (cond ((null? items) nil)
        ((test (car items)) (car items))
        (else (find test (cdr items)))))

(define (take items count)
  (let loop ((items items) (count count) (done '()))
    (if (or (<= count 0) (null? items))
        (reverse done)
        (loop (cdr items) (- count 1) (cons (car items) done)))))

(define (drop items count)
  (if (or (<= count 0) (null? items)) items (drop (cdr items) (- count 1))))

(define (last items)
  (if (null? (cdr items)) (car items) (last (cdr items))))

(define (sort items . order)
  (let ((before? (if (null? order) < (car order))))
    (define (merge-sorted one other)
      (let loop ((one one) (other other) (done '()))
        (cond ((null? one) (append (reverse done) other))
              ((null? other) (append (reverse done) one))
              ((before? (car other) (car one)) (loop one (cdr other) (cons (car other) done)))
              (else (loop (cdr one) other (cons (car one) done))))))
    (define (sorted items count)
      (if (< count 2)
          (take items count)
          (let ((half (quotient count 2)))
            (merge-sorted (sorted items half) (sorted (drop items half) (- count half))))))
    (sorted items (length items))))

;; Evaluation

(define (eval form)
  (%use "eval")
  (%eval form))

(define (subeval form . bindings)
  (%use "subeval")
  (%subeval form (if (null? bindings) nil (car bindings))))

;; Facts

(define (assert expression . evidence)
  (%use "assert")
  (%assert expression (if (null? evidence) nil (car evidence)) nil))

(define (fact? expression)
  (%use "fact?")
  (%fact? expression))

(define (facts)
  (%use "facts")
  (%facts))

(define (fact expression)
  (%use "facts")
  (%fact expression))

(define (fact/put! key value)
  (%use "assert")
  (%assert key nil value))

(define (fact/get key)
  (%use "fact?")
  (let ((found (%fact key)))
    (and found (get found :value))))

(define (facts/signature)
  (%use "facts")
  (%facts-signature))

;; Files. Inside memo/auto the fingerprint is recorded before the file is read, so that a change in between makes it stale.

(define (%fingerprint path)
  (%perform "world/fingerprint" (if (equal? path "") '() (list path))))

(define (%look path)
  (when (%must-note? path)
    (%note (table path (%fingerprint path)))))

(define (world/read . arguments)
  (%look (%path-of "world/read" arguments))
  (%perform "world/read" arguments))

(define (world/stat . arguments)
  (%look "")
  (%perform "world/stat" arguments))

(define (world/exists? . arguments)
  (%look "")
  (%perform "world/exists?" arguments))

(define (world/list . arguments)
  (%look "")
  (%perform "world/list" arguments))

(define (world/search . arguments)
  (%look "")
  (%perform "world/search" arguments))

(define (world/fingerprint . arguments)
  (%look (%path-of "world/fingerprint" arguments))
  (%perform "world/fingerprint" arguments))

;; Models

(define (llm/complete . arguments)
  (%ask-model "llm/complete" arguments))

(define (llm/intent . arguments)
  (%ask-model "llm/intent" arguments))

;; Evidence: a quotation from a file with its fingerprint. A fact can refer to it.

(define (evidence path . span)
  (let ((fingerprint (%fingerprint path)))
    (%evidence path (world/read path) fingerprint span)))

(define (evidence/verify evidence)
  (let ((path (get evidence :ref)))
    (cond ((not (world/exists? path)) 'stale)
          ((not (equal? (%fingerprint path) (get evidence :fingerprint))) 'stale)
          ((equal? (%evidence path (world/read path) (get evidence :fingerprint) (get evidence :span)) evidence) 'valid)
          (else 'content-mismatch))))

;; Budgets

(define (%share bound weight whole)
  (cond ((nil? bound) nil)
        ((integer? bound) (quotient (* bound weight) whole))
        (else (/ (* bound weight) whole))))

(define (budget-allocate limits weights)
  (let ((whole (reduce + 0 weights)))
    (unless (and (> whole 0) (every (lambda (weight) (and (integer? weight) (>= weight 0))) weights))
      (error 'type-error "the weights of a budget must be integers of 0 or more, and not all 0"))
    (%map-one (lambda (weight)
                (reduce (lambda (share entry)
                          (put share (first entry) (%share (second entry) weight whole)))
                        (table)
                        (entries limits)))
              weights)))

(define (budget-split limits parts)
  (unless (and (integer? parts) (> parts 0))
    (error 'type-error "a budget must be split into 1 or more parts"))
  (budget-allocate limits (%map-one (lambda (place) 1) (range parts))))

;; Memo

(define (%fingerprints paths)
  (reduce (lambda (known path) (put known path (%fingerprint path))) (table) paths))

(define (%memo dependencies body bindings thunk)
  (%use "memo")
  (let ((expression (%expression-key body bindings))
        (fingerprints (%fingerprints dependencies)))
    (%note fingerprints)
    (let ((found (%memo-find expression fingerprints)))
      (if found
          (car found)
          (%memo-put expression fingerprints (thunk))))))

(define (%memo-cached? dependencies body bindings thunk)
  (%use "memo")
  (%memo-has? (%expression-key body bindings) (%fingerprints dependencies)))

(define (%auto-key body bindings)
  (string-append "auto " (%expression-key body bindings)))

(define (%is-current? dependencies)
  (every (lambda (entry) (equal? (%fingerprint (first entry)) (second entry)))
         (entries dependencies)))

(define (%current expression candidates)
  (cond ((null? candidates) nil)
        ((%is-current? (car candidates)) (car candidates))
        (else (%memo-drop expression (car candidates))
              (%current expression (cdr candidates)))))

(define (%memo-auto body bindings thunk)
  (%use "memo")
  (let* ((expression (%auto-key body bindings))
         (dependencies (%current expression (%memo-candidates expression))))
    (if dependencies
        (begin (%note dependencies)
               (car (%memo-find expression dependencies)))
        (begin (%memo-missed)
               (%tracking (lambda ()
                            (let ((value (thunk)))
                              (%memo-put expression (%tracked) value))))))))

(define (%memo-deps body bindings thunk)
  (%use "memo")
  (let ((candidates (%memo-candidates (%auto-key body bindings))))
    (if (null? candidates) nil (keys (car candidates)))))

(define (memo/clear!)
  (%use "memo")
  (%memo-clear))

(define (memo/stats)
  (%use "memo")
  (%memo-stats))

;; Fixpoint: repeat a body until its watched state no longer changes.

(define (%state thunk watched)
  (%signature thunk watched (if (member 'world watched) (%fingerprint "") "")))

(define (%place-of item items)
  (let loop ((items items) (place 0))
    (cond ((null? items) nil)
          ((equal? (car items) item) place)
          (else (loop (cdr items) (+ place 1))))))

(define (%fixpoint-outcome thunk . options)
  (let* ((settings (apply table options))
         (most (get settings :max 100))
         (watched (get settings :watch '(facts bindings world))))
    (unless (and (integer? most) (>= most 0))
      (error 'type-error "the :max of a fixpoint must be an integer of 0 or more"))
    (let loop ((round 1) (value nil) (seen (list (%state thunk watched))))
      (cond ((> round most) (nonconverged value most 'max-iterations))
            ((not (%begin-round?)) (nonconverged value (- round 1) 'budget))
            (else
             (let* ((value (thunk))
                    (state (%state thunk watched))
                    (place (%place-of state seen)))
               (cond ((not place) (loop (+ round 1) value (cons state seen)))
                     ((= place 0) (%ok-after value round))
                     (else (cycle value (+ place 1) (take seen (+ place 1)))))))))))

(define (%fixpoint thunk . options)
  (let ((outcome (apply %fixpoint-outcome thunk options)))
    (case (outcome-tag outcome)
      ((ok) (outcome-value outcome))
      ((cycle) (error 'cycle "the fixpoint repeats a cycle of" (outcome-field outcome :length)))
      (else (error 'nonconverged "the fixpoint did not converge in"
                   (outcome-field outcome :iterations) "rounds")))))
