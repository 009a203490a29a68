package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/readygate/readygate/internal/controlplane"
)

// kwokConfig says how KWOK plays nodes and pods, and which.
//
//go:embed kwok.yaml
var kwokConfig []byte

const kwokPatience = time.Minute

// kwok is KWOK, which plays the kubelets of the demo's nodes.
type kwok struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// startKWOK starts it and returns when it is healthy.
func startKWOK(ctx context.Context, binaries, dir, kubeconfig string, log *os.File) (*kwok, error) {
	ports, err := controlplane.FreePorts(1)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "kwok.yaml")
	if err := os.WriteFile(config, kwokConfig, 0o600); err != nil {
		return nil, err
	}
	address := "127.0.0.1:" + strconv.Itoa(ports[0])
	k := &kwok{done: make(chan struct{})}
	k.cmd = exec.Command(filepath.Join(binaries, "kwok"), "--config", config, "--kubeconfig", kubeconfig, "--server-address", address)
	k.cmd.Stdout, k.cmd.Stderr = log, log
	if err := controlplane.StartChild(k.cmd); err != nil {
		return nil, fmt.Errorf("starting kwok (is it built? make kube): %w", err)
	}
	go func() {
		_ = k.cmd.Wait() // it ends when it is told to, or await says that it did
		close(k.done)
	}()
	if err := k.await(ctx, "http://"+address+"/healthz"); err != nil {
		k.stop()
		return nil, fmt.Errorf("waiting for kwok: %w (what it says is in %s)", err, log.Name())
	}
	return k, nil
}

func (k *kwok) await(ctx context.Context, url string) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, kwokPatience, true, func(ctx context.Context) (bool, error) {
		select {
		case <-k.done:
			return false, errors.New("it has ended")
		default:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}
		_ = answer.Body.Close() // only its status is of interest
		return answer.StatusCode == http.StatusOK, nil
	})
}

// stop ends it, and returns when it is gone.
func (k *kwok) stop() {
	_ = k.cmd.Process.Kill() // it may have ended before
	<-k.done
}
