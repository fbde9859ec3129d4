"""`export`: a crawl's stored pages as one WARC archive, with an index by which replay tools find them."""
