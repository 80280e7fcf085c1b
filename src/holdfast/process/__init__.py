"""Child processes: supervision, and confinement by the kernel (Landlock, seccomp, privileges) beneath every sandbox.

The confinement modules import neither the rest of Holdfast nor `typing` or `enum`: a worker confines itself before it
loads anything else, and it must start within milliseconds. So each module here is imported directly.
"""
