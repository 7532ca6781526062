// go-redis, unmodified: go_redis PORT PORT PORT (of the nodes). Prints what it did. By TLS and as a user if
// the test has set ACCESS_* (secured.py).
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

func check(condition bool, what string, values ...any) {
	if !condition {
		fmt.Fprintln(os.Stderr, append([]any{"go-redis:", what}, values...)...)
		os.Exit(1)
	}
}

func access(name string) string { return os.Getenv("ACCESS_" + name) }

var secured = access("CA") != ""

// security returns nil for a plain group. certificate is CERT and KEY of the environment, with what comes
// before, or "-" for none.
func security(authority string, certificate string) *tls.Config {
	if !secured {
		return nil
	}
	text, err := os.ReadFile(access(authority))
	check(err == nil, "the authority", err)
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	check(config.RootCAs.AppendCertsFromPEM(text), "the authority is no PEM")
	if certificate != "-" {
		pair, err := tls.LoadX509KeyPair(access(certificate+"CERT"), access(certificate+"KEY"))
		check(err == nil, "the certificate", err)
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

func options(port string) *redis.Options {
	return &redis.Options{Addr: "127.0.0.1:" + port, Username: access("USER"), Password: access("PASSWORD"),
		TLSConfig: security("CA", "-"), MaxRetries: -1}
}

func oneNode(port string, protocol int) {
	with := options(port)
	with.Protocol = protocol
	r := redis.NewClient(with)
	defer r.Close()
	key := "go:" + port
	bytes := "\x00\xff\r\n"
	check(r.Set(ctx, key, bytes, 0).Err() == nil, "SET")
	check(r.Get(ctx, key).Val() == bytes, "GET")
	check(errors.Is(r.Get(ctx, "go:nothing").Err(), redis.Nil), "GET of nothing")
	isSet, err := r.SetNX(ctx, key, "x", 0).Result()
	check(err == nil && !isSet, "SET NX", err)
	check(r.MSet(ctx, key+":a", 1, key+":b", 2).Err() == nil, "MSET")
	check(fmt.Sprint(r.MGet(ctx, key+":a", "go:nothing", key+":b").Val()) == "[1 <nil> 2]", "MGET")
	check(r.IncrBy(ctx, key+":a", 4).Val() == 5, "INCRBY")
	results, err := r.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, key, 1, 0)
		p.Incr(ctx, key)
		return nil
	})
	check(err == nil && results[1].(*redis.IntCmd).Val() == 2, "MULTI", err)
	results, err = r.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := 0; i < 1000; i++ {
			p.Incr(ctx, key)
		}
		return nil
	})
	check(err == nil && results[999].(*redis.IntCmd).Val() == 1002, "a pipeline", err)
	found := 0
	for names := r.Scan(ctx, 0, key+"*", 2).Iterator(); names.Next(ctx); found++ {
	}
	check(found == 3, "SCAN found", found)
	err = r.Watch(ctx, func(tx *redis.Tx) error {
		r.Set(ctx, key, "changed", 0)
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, key, "lost", 0).Err() })
		return err
	}, key)
	check(errors.Is(err, redis.TxFailedErr) && r.Get(ctx, key).Val() == "changed", "WATCH", err)
}

// refusals is what a node refuses, by the errors of the library: those that the node sent are redis.Error.
func refusals(port string, protocol int) {
	nobody := func(o *redis.Options) { o.Username, o.Password = "", "" }
	keep := func(*redis.Options) {}
	for _, one := range []struct {
		what   string
		change func(*redis.Options)
		words  []any
		sent   bool
		says   string
	}{
		{"a wrong password", func(o *redis.Options) { o.Password = "wrong" }, []any{"PING"}, true, "WRONGPASS "},
		{"no user", nobody, []any{"PING"}, true, "NOAUTH "},
		{"another key", keep, []any{"GET", "forbidden"}, true, "NOPERM "},
		{"a command of operators", keep, []any{"LEASEHOLD", "MEMBER", "LIST"}, true, "NOPERM "},
		{"a server of another authority", func(o *redis.Options) { o.TLSConfig = security("OTHER_CA", "-") },
			[]any{"PING"}, false, "certificate signed by unknown authority"},
		{"a certificate of another authority", func(o *redis.Options) { o.TLSConfig = security("CA", "OTHER_") },
			[]any{"PING"}, false, "unknown certificate authority"},
	} {
		with := options(port)
		with.Protocol = protocol
		one.change(with)
		r := redis.NewClient(with)
		reply, err := r.Do(ctx, one.words...).Result()
		check(err != nil, one.what, "was accepted:", reply)
		var sent redis.Error
		check(errors.As(err, &sent) == one.sent && strings.Contains(err.Error(), one.says), one.what, err)
		r.Close()
	}
	with := options(port)
	with.Protocol = protocol
	nobody(with)
	with.TLSConfig = security("CA", "")
	r := redis.NewClient(with)
	defer r.Close()
	who, err := r.Do(ctx, "ACL", "WHOAMI").Result()
	check(who == access("USER"), "the user of a certificate is", who, err)
}

func cluster(ports []string) {
	addresses := []string{}
	for _, port := range ports {
		addresses = append(addresses, "127.0.0.1:"+port)
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses, Username: access("USER"),
		Password: access("PASSWORD"), TLSConfig: security("CA", "-"), ReadOnly: true})
	defer c.Close()
	for i := 0; i < 50; i++ {
		check(c.Set(ctx, "go:cluster:"+strconv.Itoa(i), i, 0).Err() == nil, "cluster SET")
	}
	for i := 0; i < 50; i++ {
		check(c.Get(ctx, "go:cluster:"+strconv.Itoa(i)).Val() == strconv.Itoa(i), "cluster GET")
	}
}

func main() {
	ports := os.Args[1:]
	for _, port := range ports {
		for _, protocol := range []int{2, 3} {
			oneNode(port, protocol)
			if secured {
				refusals(port, protocol)
			}
		}
	}
	cluster(ports)
	told := ""
	if secured {
		told = "; by TLS as a user, and what that user is refused"
	}
	fmt.Printf("go-redis %s, RESP2 and RESP3: commands, a pipeline, MULTI, WATCH, SCAN, the cluster client%s\n",
		redis.Version(), told)
}
