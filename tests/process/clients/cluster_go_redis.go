// The cluster client of go-redis, unmodified: cluster_go_redis PORT PORT PORT (of the nodes). Writes and
// reads back until its input ends; a line for each value that was acknowledged ("ok N"), and for each call
// that failed ("failed WHY"). By TLS and as a user if the test has set ACCESS_* (secured.py).
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

func security() *tls.Config {
	authority := os.Getenv("ACCESS_CA")
	if authority == "" {
		return nil
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	text, err := os.ReadFile(authority)
	if err != nil || !config.RootCAs.AppendCertsFromPEM(text) {
		fmt.Fprintln(os.Stderr, "go-redis: the authority", err)
		os.Exit(1)
	}
	return config
}

func main() {
	addresses := []string{}
	for _, port := range os.Args[1:] {
		addresses = append(addresses, "127.0.0.1:"+port)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses, Username: os.Getenv("ACCESS_USER"),
		Password: os.Getenv("ACCESS_PASSWORD"), TLSConfig: security(), DialTimeout: 3 * time.Second,
		ReadTimeout: 3 * time.Second})
	var ended atomic.Value
	go func() {
		io.Copy(io.Discard, os.Stdin)
		ended.Store(true)
	}()
	ctx := context.Background()
	for number := 1; ended.Load() == nil; number++ {
		key, value := "go-redis:"+strconv.Itoa(number), strconv.Itoa(number)
		if err := client.Set(ctx, key, value, 0).Err(); err != nil {
			fmt.Println("failed", strings.SplitN(err.Error(), "\n", 2)[0])
		} else {
			fmt.Println("ok", number)
			read, err := client.Get(ctx, key).Result()
			if err != nil && err != redis.Nil {
				fmt.Println("failed", strings.SplitN(err.Error(), "\n", 2)[0])
			} else if read != value {
				fmt.Printf("wrong %d %q\n", number, read)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}
