"""The roles of a crawl: a folder for each, which imports none of the others."""

import os

from services.role.garbage import look_less_often

#: numpy's library for matrices would start a thread for each core, which spins while it waits. Nobody here multiplies matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
look_less_often()
