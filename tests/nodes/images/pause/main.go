// Command pause waits until it is told to end: the sandbox of every pod, and the work of every test workload.
//
//	pause [SECONDS]   ends so many seconds after it was told to: a program that takes its time
//	pause sleep SECONDS   ends by itself: what a preStop hook runs
package main

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "sleep" {
		time.Sleep(seconds(os.Args[2]))
		return
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
	if len(os.Args) == 2 {
		time.Sleep(seconds(os.Args[1]))
	}
}

func seconds(word string) time.Duration {
	count, err := strconv.Atoi(word)
	if err != nil {
		os.Exit(2)
	}
	return time.Duration(count) * time.Second
}
