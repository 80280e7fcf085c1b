"""Sessions that machines share: their files and policies travel through the store."""
