module github.com/stintmq/stint

go 1.26
