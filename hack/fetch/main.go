// Command fetch downloads release binaries of Kubernetes and etcd into a directory, and verifies their
// checksums. It ends with code 3 if a release cannot be had, and leaves nothing behind that is not verified.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
)

func main() {
	var r releases
	flag.StringVar(&r.Kubernetes, "kubernetes", "", "version, e.g. v1.37.0")
	flag.StringVar(&r.Etcd, "etcd", "", "version, e.g. v3.7.3")
	flag.StringVar(&r.KubernetesURL, "kubernetes-url", env("KUBE_RELEASES", "https://dl.k8s.io/release"), "where releases of Kubernetes are")
	flag.StringVar(&r.EtcdURL, "etcd-url", env("ETCD_RELEASES", "https://github.com/etcd-io/etcd/releases/download"), "where releases of etcd are")
	to := flag.String("to", "", "directory")
	flag.Parse()
	r.OS, r.Arch, r.Out = runtime.GOOS, runtime.GOARCH, os.Stdout
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := r.fetch(ctx, *to, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "kube:", err)
		if errors.Is(err, errUnavailable) {
			os.Exit(3)
		}
		os.Exit(1)
	}
}

func env(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}
