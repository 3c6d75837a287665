module herald.example/follow

go 1.19
