-- Title searches scan what waits to be sorted into the index. With the default of 4 MB, that takes longer than the search.
ALTER INDEX deckhand.words_by_gram SET (gin_pending_list_limit = 64);
