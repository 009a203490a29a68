package check_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
)

var nothing = check.Env{Variable: func(string) string { return "" }}

func TestAnErrorNamesTheFieldAndAValidValue(t *testing.T) {
	t.Parallel()
	const (
		noURL      = `, must be a URL with a host, e.g. http://localhost:9099/readiness`
		noScheme   = `, must begin with http:// or https://, e.g. http://localhost:9099/readiness`
		noPort     = `, must be a number from 1 to 65535`
		noAddress  = `, must be host:port, e.g. localhost:6784`
		noStatus   = `, must be a code or a range of codes from 100 to 599, e.g. "200-299" or "401"`
		noCommand  = `exec.command is empty, must be a command and its arguments, e.g. ["/usr/bin/nvidia-smi", "-L"]`
		noService  = ` is not set, must be a Service of the pod's namespace, e.g. network-reporter, or host:port`
		yearAtMost = `, must be at most 8760h0m0s, e.g. `
		fine       = "http://localhost"
	)
	http := func(h check.HTTP) check.Spec { return check.Spec{HTTP: &h} }
	headers := func(h map[string]string) check.Spec { return http(check.HTTP{URL: fine, Headers: h}) }
	for want, spec := range map[string]check.Spec{
		`http is not set, nor is tcp, grpc, file, exec, cni or peers: set one of them, e.g. http: {url: "http://localhost:9099/readiness"}, or cni: {} for the default CNI directories`: {},
		`exec is set together with http and tcp: set one of them, and add another entry to checks for each of the others`:                                                               {HTTP: &check.HTTP{}, TCP: &check.TCP{}, Exec: &check.Exec{}},
		`cni is set together with file and grpc and peers: set one of them, and add another entry to checks for each of the others`:                                                     {CNI: &check.CNI{}, Peers: &check.Peers{}, File: &check.File{}, GRPC: &check.GRPC{}},

		`http.url is ""` + noURL:                                                          http(check.HTTP{}),
		`http.url is "localhost"` + noURL:                                                 http(check.HTTP{URL: "localhost"}),
		`http.url is "http://"` + noURL:                                                   http(check.HTTP{URL: "http://"}),
		`http.url is "http://:80"` + noURL:                                                http(check.HTTP{URL: "http://:80"}),
		`http.url is "http://a b"` + noURL:                                                http(check.HTTP{URL: "http://a b"}),
		`http.url is "http:///ready"` + noURL:                                             http(check.HTTP{URL: "http:///ready", UnixSocket: "/run/agent.sock"}),
		`http.url is "ftp://localhost"` + noScheme:                                        http(check.HTTP{URL: "ftp://localhost"}),
		`http.url is "http://localhost:0": the port is "0"` + noPort:                      http(check.HTTP{URL: "http://localhost:0"}),
		`http.url is "http://localhost:65536": the port is "65536"` + noPort:              http(check.HTTP{URL: "http://localhost:65536"}),
		`http.unixSocket is "agent.sock", must be an absolute path, e.g. /run/agent.sock`: http(check.HTTP{URL: fine, UnixSocket: "agent.sock"}),
		`http.status[0] is "OK"` + noStatus:                                               http(check.HTTP{URL: fine, Status: []string{"OK"}}),
		`http.status[1] is "99"` + noStatus:                                               http(check.HTTP{URL: fine, Status: []string{"200", "99"}}),
		`http.status[0] is "600"` + noStatus:                                              http(check.HTTP{URL: fine, Status: []string{"600"}}),
		`http.status[0] is "299-200"` + noStatus:                                          http(check.HTTP{URL: fine, Status: []string{"299-200"}}),
		`http.status[0] is "200-"` + noStatus:                                             http(check.HTTP{URL: fine, Status: []string{"200-"}}),
		`http.status[0] is ""` + noStatus:                                                 http(check.HTTP{URL: fine, Status: []string{""}}),

		`http.headers has the name "", must consist of letters, digits and dashes, e.g. X-Health-Token`:    headers(map[string]string{"": "x"}),
		`http.headers has the name "X Y", must consist of letters, digits and dashes, e.g. X-Health-Token`: headers(map[string]string{"X Y": "x"}),
		`http.headers has the name "X:", must consist of letters, digits and dashes, e.g. X-Health-Token`:  headers(map[string]string{"X:": "x", "Y:": "y"}),
		`http.headers has an invalid value for X, must be one line of text`:                                headers(map[string]string{"X": "a\r\nb"}),
		`http.headers has an invalid value for Y, must be one line of text`:                                headers(map[string]string{"Y": "\x01"}),
		`http.headers has an invalid value for host, must be one line of text`:                             headers(map[string]string{"host": "a b"}),
		`http.headers has X-A and x-a, which are the same header: remove one of them`:                      headers(map[string]string{"X-A": "1", "x-a": "2"}),

		`http.caFile is "ca.crt", must be an absolute path, e.g. /etc/agent/ca.crt`:                                                        http(check.HTTP{URL: "https://localhost", TLS: check.TLS{CAFile: "ca.crt"}}),
		`http.caFile is "/ca.crt", which has no effect because insecureSkipVerify is true: remove one of them`:                             http(check.HTTP{URL: "https://localhost", TLS: check.TLS{CAFile: "/ca.crt", InsecureSkipVerify: true}}),
		`http.url is "http://localhost", which does not use TLS: remove caFile, serverName and insecureSkipVerify, or begin with https://`: http(check.HTTP{URL: fine, TLS: check.TLS{ServerName: "x"}}),

		`tcp.address is ""` + noAddress:                              {TCP: &check.TCP{}},
		`tcp.address is "localhost"` + noAddress:                     {TCP: &check.TCP{Address: "localhost"}},
		`tcp.address is ":80"` + noAddress:                           {TCP: &check.TCP{Address: ":80"}},
		`tcp.address is "::1:80"` + noAddress:                        {TCP: &check.TCP{Address: "::1:80"}},
		`tcp.address is "a:": the port is ""` + noPort:               {TCP: &check.TCP{Address: "a:"}},
		`tcp.address is "a:http": the port is "http"` + noPort:       {TCP: &check.TCP{Address: "a:http"}},
		`tcp.address is "a:+80": the port is "+80"` + noPort:         {TCP: &check.TCP{Address: "a:+80"}},
		`tcp.address is "a:0": the port is "0"` + noPort:             {TCP: &check.TCP{Address: "a:0"}},
		`tcp.address is "[::1]:65536": the port is "65536"` + noPort: {TCP: &check.TCP{Address: "[::1]:65536"}},

		`grpc.address is ""` + noAddress: {GRPC: &check.GRPC{}},
		`grpc.address is "unix://agent.sock", must name an absolute path, e.g. unix:///run/agent.sock`:             {GRPC: &check.GRPC{Address: "unix://agent.sock"}},
		`grpc.address is "a:x": the port is "x"` + noPort:                                                          {GRPC: &check.GRPC{Address: "a:x"}},
		`grpc.tls.caFile is "ca.crt", must be an absolute path, e.g. /etc/agent/ca.crt`:                            {GRPC: &check.GRPC{Address: "a:1", TLS: &check.TLS{CAFile: "ca.crt"}}},
		`grpc.tls.caFile is "/ca.crt", which has no effect because insecureSkipVerify is true: remove one of them`: {GRPC: &check.GRPC{Address: "a:1", TLS: &check.TLS{CAFile: "/ca.crt", InsecureSkipVerify: true}}},

		`file.path is "", must be absolute, e.g. /var/lib/calico/nodename`:                          {File: &check.File{}},
		`file.path is "x/y", must be absolute, e.g. /var/lib/calico/nodename`:                       {File: &check.File{Path: "x/y"}},
		`file.newerThan is 0s, must be at least 1s, e.g. 5m`:                                        {File: &check.File{Path: "/x", NewerThan: check.For(0)}},
		`file.newerThan is -5m0s, must be at least 1s, e.g. 5m`:                                     {File: &check.File{Path: "/x", NewerThan: check.For(-5 * time.Minute)}},
		`file.contains has 65537 bytes, must have at most 65536: the check reads no more of a file`: {File: &check.File{Path: "/x", Contains: strings.Repeat("x", 65537)}},
		noCommand: {Exec: &check.Exec{}},
		`exec.command[1] contains a zero byte, which an argument must not contain`: {Exec: &check.Exec{Command: []string{"x", "\x00"}}},

		`peers.ready` + noService:                           {Peers: &check.Peers{}},
		`peers.everyone` + noService:                        {Peers: &check.Peers{Ready: "a:1"}},
		`peers.ready is ":1"` + noAddress:                   {Peers: &check.Peers{Ready: ":1", Everyone: "b:1"}},
		`peers.everyone is "::"` + noAddress:                {Peers: &check.Peers{Ready: "a:1", Everyone: "::"}},
		`peers.ready is "a:0": the port is "0"` + noPort:    {Peers: &check.Peers{Ready: "a:0", Everyone: "b:1"}},
		`peers.everyone is "b:x": the port is "x"` + noPort: {Peers: &check.Peers{Ready: "a:1", Everyone: "b:x"}},
		`peers.everyone is "a:1", which has the same address as ready: must be another Service, which selects all reporters (publishNotReadyAddresses: true), e.g. network-reporter-all`: {Peers: &check.Peers{Ready: "a:1", Everyone: "a:1"}},
		`peers.patience is -1s, must be at least 0s, e.g. 30s`: {Peers: &check.Peers{Ready: "a:1", Everyone: "b:1", Patience: check.For(-time.Second)}},
		`peers.patience is 8760h0m1s` + yearAtMost + `30s`:     {Peers: &check.Peers{Ready: "a:1", Everyone: "b:1", Patience: check.For(check.MaxDuration + time.Second)}},
		`file.newerThan is 8760h0m1s` + yearAtMost + `5m`:      {File: &check.File{Path: "/x", NewerThan: check.For(check.MaxDuration + time.Second)}},
	} {
		if c, err := check.New(spec, nothing); err == nil || err.Error() != want {
			t.Errorf("\n got %v (%v)\nwant %s", err, c, want)
		}
	}
	if _, err := check.New(check.Spec{Exec: &check.Exec{Command: []string{"", "x"}}}, nothing); err == nil || err.Error() != noCommand {
		t.Errorf("a command without a name: %v", err)
	}
}

func TestValidSpecsCompile(t *testing.T) {
	t.Parallel()
	for _, spec := range []check.Spec{
		{HTTP: &check.HTTP{URL: "https://[::1]:10250/healthz", Status: []string{"100-599"}, Headers: map[string]string{"X-Token": "", "Host": "a:1"}}},
		{HTTP: &check.HTTP{URL: "http://localhost/ready", UnixSocket: "/run/agent.sock"}},
		{TCP: &check.TCP{Address: "[fe80::1%eth0]:6784"}},
		{GRPC: &check.GRPC{Address: "unix:///run/agent.sock", Service: "x"}},
		{GRPC: &check.GRPC{Address: "localhost:9879", TLS: &check.TLS{}}},
		{File: &check.File{Path: "/x", NewerThan: check.For(time.Second), Contains: strings.Repeat("x", 65536)}},
		{Exec: &check.Exec{Command: []string{"x", ""}}},
		{Peers: &check.Peers{Ready: "a:1", Everyone: "[fd00::1]:1", Patience: check.For(0)}},
		{Peers: &check.Peers{Ready: "a:1", Everyone: "a:2", Patience: check.For(check.MaxDuration)}},
	} {
		if c, err := check.New(spec, nothing); err != nil || c == nil {
			t.Errorf("%+v: %v", spec, err)
		}
	}
}

func TestOnlyChecksThatTakeMuchAreCostly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spec   check.Spec
		costly bool
	}{
		"http":  {check.Spec{HTTP: &check.HTTP{}}, false},
		"peers": {check.Spec{Peers: &check.Peers{}}, false},
		"exec":  {check.Spec{Exec: &check.Exec{}}, true},
		"cni":   {check.Spec{CNI: &check.CNI{}}, true},
	} {
		if got := test.spec.Costly(); got != test.costly {
			t.Errorf("%s: costly is %v", name, got)
		}
	}
}

func TestAnEndpointIsParsedAsACheck(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]check.Spec{
		"http://localhost:9099/readiness":  {HTTP: &check.HTTP{URL: "http://localhost:9099/readiness"}},
		"https://localhost:10250/a?b=c://": {HTTP: &check.HTTP{URL: "https://localhost:10250/a?b=c://"}},
		"tcp://localhost:6784":             {TCP: &check.TCP{Address: "localhost:6784"}},
		"tcp://[::1]:6784":                 {TCP: &check.TCP{Address: "[::1]:6784"}},
		"grpc://localhost:9879":            {GRPC: &check.GRPC{Address: "localhost:9879"}},
		"grpc://localhost:9879/a.b/C":      {GRPC: &check.GRPC{Address: "localhost:9879", Service: "a.b/C"}},
		"file:///var/lib/calico/nodename":  {File: &check.File{Path: "/var/lib/calico/nodename"}},
	} {
		if got, err := check.Parse(endpoint); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", endpoint, got, err)
		}
	}
	const must = `, must begin with http://, https://, tcp://, grpc:// or file://, e.g. http://localhost:9099/readiness; other kinds of checks need a configuration file (--config)`
	for endpoint, want := range map[string]string{
		"":                 `"" has no scheme, must have one, e.g. http://localhost:9099/readiness`,
		"localhost:9099":   `"localhost:9099" has no scheme, must have one, e.g. http://localhost:9099/readiness`,
		"http:/localhost":  `"http:/localhost" has no scheme, must have one, e.g. http://localhost:9099/readiness`,
		"exec:///bin/true": `"exec:///bin/true" begins with exec://` + must,
		"HTTP://localhost": `"HTTP://localhost" begins with HTTP://` + must,
		"://localhost":     `"://localhost" begins with ://` + must,
	} {
		if got, err := check.Parse(endpoint); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %+v, %v\nwant %s", endpoint, got, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, endpoint := range []string{"http://localhost:9099/readiness", "https://a", "tcp://[::1]:1", "grpc://a:1/b", "file:///x", "x", "://", "http://%zz", "http://a:b@c:1/?#"} {
		f.Add(endpoint)
	}
	f.Fuzz(func(t *testing.T, endpoint string) {
		spec, err := check.Parse(endpoint)
		if err != nil {
			if !strings.Contains(err.Error(), "e.g. http://localhost:9099/readiness") && !strings.Contains(err.Error(), "as in http://localhost:9099/readiness") {
				t.Fatalf("%q: no example in %v", endpoint, err)
			}
			return
		}
		c, err := check.New(spec, check.Env{})
		if (c == nil) == (err == nil) {
			t.Fatalf("%q: %v, %v", endpoint, c, err)
		}
		if err == nil {
			return
		}
		for _, field := range []string{"http.url ", "tcp.address ", "grpc.address ", "file.path "} {
			if strings.HasPrefix(err.Error(), field) {
				return
			}
		}
		t.Fatalf("%q: no field in %v", endpoint, err)
	})
}
