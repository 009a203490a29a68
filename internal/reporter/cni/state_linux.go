package cni

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containernetworking/cni/libcni"
	"golang.org/x/sys/unix"
)

// Files and directories of a state directory, in addition to one file per record.
const (
	lockFile   = "lock"
	netnsDir   = "netns"
	cacheDir   = "cache" // libcni's cache of results, for DEL
	recordExt  = ".json"
	partialExt = ".partial"
)

// record has everything that the DEL of a canary needs. It is written before the canary is created.
type record struct {
	ID     string          `json:"containerID"`
	NetNS  string          `json:"netns"`
	IfName string          `json:"ifName"`
	Config json.RawMessage `json:"config"`

	// added is true if ADD returned in this process, so that no plugin is still running.
	added bool
}

func (r *record) runtime() *libcni.RuntimeConf {
	return &libcni.RuntimeConf{ContainerID: r.ID, NetNS: r.NetNS, IfName: r.IfName, Args: args(r.ID)}
}

// state is a locked state directory. Child processes that have not yet executed a plugin
// hold the lock too, so the owner of the lock finds all plugins of earlier runs in /proc.
type state struct {
	dir  string
	lock *os.File
}

// openState waits for the lock until the end of ctx.
func openState(ctx context.Context, dir string) (*state, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, scratchFailed("finding the state directory", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, netnsDir), 0o700); err != nil {
		return nil, scratchFailed("creating the state directory", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, scratchFailed("opening the state directory", err)
	}
	for {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return &state{dir: dir, lock: lock}, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = lock.Close()
			return nil, scratchFailed("locking "+dir, err)
		}
		select {
		case <-ctx.Done():
			_ = lock.Close()
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, fmt.Errorf("waiting for another canary: %w", ctx.Err())
			}
			return nil, failure(Busy, "another canary is running with the state directory %s", dir)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *state) close() { _ = s.lock.Close() }

func (s *state) file(id string) string { return filepath.Join(s.dir, id+recordExt) }

func (s *state) netns(id string) string { return filepath.Join(s.dir, netnsDir, id) }

// begin writes the record of a new canary durably to disk.
func (s *state) begin(config []byte) (*record, error) {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	id := idPrefix + hex.EncodeToString(random[:])
	r := &record{ID: id, NetNS: s.netns(id), IfName: ifName, Config: config}
	text, err := json.Marshal(r)
	if err == nil {
		err = writeDurably(s.file(id), text)
	}
	if err != nil {
		return nil, scratchFailed("writing to the state directory", err)
	}
	return r, nil
}

func writeDurably(path string, text []byte) error {
	f, err := os.OpenFile(path+partialExt, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return dir.Sync()
}

// left returns the records of canaries that were not removed. It returns valid records also if another is invalid.
func (s *state) left() ([]*record, error) {
	files, err := filepath.Glob(filepath.Join(s.dir, idPrefix+"*"+recordExt))
	if err != nil {
		return nil, scratchFailed("reading the state directory", err)
	}
	var records []*record
	for _, file := range files {
		r := &record{}
		text, readErr := os.ReadFile(file)
		if readErr != nil || json.Unmarshal(text, r) != nil || s.file(r.ID) != file {
			err = failure(DelFailed, "%s is not a valid record of a canary: remove it", file)
			continue
		}
		records = append(records, r)
	}
	return records, err
}

func (s *state) end(id string) error {
	if err := os.Remove(s.file(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return scratchFailed("removing the canary's record", err)
	}
	return nil
}

// tidy removes files without a record: partial files of killed runs, and the
// namespaces of records that were deleted manually.
func (s *state) tidy() error {
	partial, _ := filepath.Glob(filepath.Join(s.dir, "*"+partialExt))
	for _, file := range partial {
		if err := os.Remove(file); err != nil {
			return scratchFailed("cleaning up the state directory", err)
		}
	}
	mounts, err := os.ReadDir(filepath.Join(s.dir, netnsDir))
	for _, mount := range mounts {
		if strings.HasPrefix(mount.Name(), idPrefix) {
			err = errors.Join(err, removeNetNS(s.netns(mount.Name())))
		}
	}
	if err = errors.Join(err, os.RemoveAll(filepath.Join(s.dir, cacheDir))); err != nil {
		return scratchFailed("cleaning up the state directory", err)
	}
	return nil
}
