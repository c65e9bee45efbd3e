import os

# OpenMP's threads spin at every barrier until all have come. On a machine whose cores have other work as well
# that makes training ten times slower, since the thread that is waited for does not get its turn. Sleeping
# instead costs nothing measurable. The library reads this when torch is imported, which comes later.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
