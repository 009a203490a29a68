// Command cluster runs a control plane (etcd and kube-apiserver) on loopback until it is
// interrupted, to try things on. Nothing of it is left when it ends.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/readygate/readygate/internal/controlplane"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: cluster BINARIES KUBECONFIG, e.g. cluster bin/kube bin/kubeconfig")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(binaries, kubeconfig string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if _, err := os.Stat(kubeconfig); err == nil {
		return fmt.Errorf("%s exists: another cluster uses it; end that one, or remove the file if there is none", kubeconfig)
	}
	fmt.Println("cluster: starting etcd and kube-apiserver")
	cp, err := controlplane.Start(ctx, controlplane.Options{Binaries: binaries})
	if err != nil {
		return err
	}
	defer func() {
		_ = os.Remove(kubeconfig) // it may be removed already
		err = errors.Join(err, cp.Stop())
	}()
	admin, err := cp.Admin()
	if err != nil {
		return err
	}
	if kubeconfig, err = filepath.Abs(kubeconfig); err != nil {
		return err
	}
	if err := controlplane.WriteKubeconfig(kubeconfig, admin); err != nil {
		return err
	}
	fmt.Printf("cluster: ready. In another terminal:\n\n  export KUBECONFIG=%s PATH=%s:$PATH\n\ncluster: Ctrl-C ends it and removes everything\n", kubeconfig, binaries)
	<-ctx.Done()
	return nil
}
