"""What a crawl costs here, beside what it costs with others: the same web, the same machine, in turns.

`crawlers` says who crawls and with which settings, `measure` what one crawl took, seen from outside; `startup` what it takes to
begin; `figures` makes medians, ratios and growth of many, and knows no processes; `targets` judges them, `results` and `plot` tell.
"""
