"""One module per family of tasks; each offers functions make(content, unseen) -> Sample.

`content` (words.Content) decides which side of the content split is drawn; `unseen` asks for a phrasing of the
instruction that training never uses.
"""
