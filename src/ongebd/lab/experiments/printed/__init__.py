"""Every value that the paper prints in a table, as data, to stand beside what is measured.

Nothing here was measured by us. Values are as printed, the paper's errors included; what is wrong or cannot
be right is told in a table's `doubts` and `notes`.

>>> PRINTED["online-kinetics"].value("ESTimator", "avg")
0.748
>>> PRINTED["offline-tapos"].doubt("ISBA", "avg").computed
0.278
"""

from ongebd.lab.experiments.printed.table import Doubt, PrintedTable, RowSetting
from ongebd.lab.experiments.printed.tables import PRINTED

__all__ = ["PRINTED", "Doubt", "PrintedTable", "RowSetting"]
