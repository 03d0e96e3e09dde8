"""Python that shows a table and a picture without any library."""

FRAME = """class DataFrame:
  columns, index, shape = ['city', 'people'], [0, 1], (2000, 2)
  def head(self, count): return self
  def itertuples(self, index, name): return [('Bern', 134591), ('Köln', None)]
"""
FIGURE = """class Figure:
  def _repr_svg_(self): return '<svg xmlns="http://www.w3.org/2000/svg" width="640" height="240"><circle cx="9" cy="9" r="9"/></svg>'
"""
