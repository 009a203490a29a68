package nodestatus

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// kubeconfig is the part of a kubeconfig that the reporter uses.
type kubeconfig struct {
	CurrentContext string  `json:"current-context"`
	Contexts       entries `json:"contexts"`
	Clusters       entries `json:"clusters"`
	Users          entries `json:"users"`
}

type entries []entry

// entry has a name and the field of its list: context, cluster or user.
type entry struct {
	Name    string `json:"name"`
	Context struct {
		Cluster string `json:"cluster"`
		User    string `json:"user"`
	} `json:"context"`
	Cluster cluster `json:"cluster"`
	User    user    `json:"user"`
}

func (all entries) find(name string) (entry, bool) {
	i := slices.IndexFunc(all, func(e entry) bool { return e.Name == name })
	if i < 0 {
		return entry{}, false
	}
	return all[i], true
}

type cluster struct {
	Server     string `json:"server"`
	CAFile     string `json:"certificate-authority"`
	CAData     []byte `json:"certificate-authority-data"`
	ServerName string `json:"tls-server-name"`
	SkipVerify bool   `json:"insecure-skip-tls-verify"`
}

type user struct {
	Token     string `json:"token"`
	TokenFile string `json:"tokenFile"`
	CertFile  string `json:"client-certificate"`
	CertData  []byte `json:"client-certificate-data"`
	KeyFile   string `json:"client-key"`
	KeyData   []byte `json:"client-key-data"`
	Exec      any    `json:"exec"`
	Provider  any    `json:"auth-provider"`
}

// FromKubeconfig returns the connection of the current context of a kubeconfig, for a reporter
// that does not run in a pod.
func FromKubeconfig(path string) (Connection, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Connection{}, err
	}
	var config kubeconfig
	if err := yaml.Unmarshal(data, &config); err != nil {
		return Connection{}, fmt.Errorf("%s is not a kubeconfig: %w", path, err)
	}
	connection, err := config.connection(filepath.Dir(path))
	if err != nil {
		return Connection{}, fmt.Errorf("%s: %w", path, err)
	}
	return connection, nil
}

func (k kubeconfig) connection(dir string) (Connection, error) {
	current, found := k.Contexts.find(k.CurrentContext)
	if !found {
		return Connection{}, fmt.Errorf("current-context is %q, which is not in contexts", k.CurrentContext)
	}
	names := current.Context
	to, _ := k.Clusters.find(names.Cluster)
	if to.Cluster.Server == "" {
		return Connection{}, fmt.Errorf("the context %q names the cluster %q, which has no server", current.Name, names.Cluster)
	}
	as, found := k.Users.find(names.User)
	if !found {
		return Connection{}, fmt.Errorf("the context %q names the user %q, which is not in users", current.Name, names.User)
	}
	if server, err := url.Parse(to.Cluster.Server); err != nil || server.Host == "" || server.Scheme != "https" && server.Scheme != "http" {
		return Connection{}, fmt.Errorf("the server of cluster %q is %q, must be a URL, e.g. https://10.0.0.1:6443", names.Cluster, to.Cluster.Server)
	}
	if as.User.Exec != nil || as.User.Provider != nil {
		return Connection{}, errors.New("the user has exec or auth-provider, which the reporter does not support: use token, tokenFile or client-certificate")
	}
	return connect(dir, to.Cluster, as.User), nil
}

// connect resolves relative paths like kubectl, from the directory of the kubeconfig.
func connect(dir string, to cluster, as user) Connection {
	from := func(text []byte, path string) source {
		if path != "" && !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if len(text) > 0 {
			path = ""
		}
		return source{text: text, file: path}
	}
	token := from([]byte(as.Token), as.TokenFile)
	if as.TokenFile != "" {
		token = from(nil, as.TokenFile) // takes precedence, because it can be rotated
	}
	return Connection{
		server:     strings.TrimRight(to.Server, "/"),
		serverName: to.ServerName,
		skipVerify: to.SkipVerify,
		ca:         from(to.CAData, to.CAFile),
		bearer:     token,
		cert:       from(as.CertData, as.CertFile),
		key:        from(as.KeyData, as.KeyFile),
	}
}
