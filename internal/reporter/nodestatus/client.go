package nodestatus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/readygate/readygate/internal/version"
)

const (
	// requestTimeout is the timeout of one request.
	requestTimeout = 10 * time.Second
	// maxResponse limits the bytes read of a response. A large node has about 100 KB.
	maxResponse = 4 << 20

	strategicMerge = "application/strategic-merge-patch+json"
	asNode         = "application/json"
	// asMetadata requests a response with only the node's metadata.
	asMetadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
)

// Client writes the status of one node. It is not safe for concurrent use.
type Client struct {
	// Node is the name of the node.
	Node string
	// AsNode sends requests as the node, which the account of the connection must be
	// allowed to impersonate.
	AsNode bool

	connection Connection
	http       *http.Client
}

// NewClient returns a client for a node.
func NewClient(connection Connection, node string) *Client {
	return &Client{Node: node, connection: connection}
}

// Learn returns the node, with a PATCH that changes nothing.
func (c *Client) Learn(ctx context.Context) (Node, error) {
	return c.patch(ctx, asNode, []byte("{}"))
}

// Report writes the conditions and returns the metadata of the node. Conditions of other types, and the
// rest of the status, stay unchanged. Without conditions it changes nothing and keeps the connection open,
// which the API server closes after 90 s without a request; the returned UID shows whether the node was recreated.
func (c *Client) Report(ctx context.Context, conditions []Condition) (Node, error) {
	body, err := json.Marshal(Node{Status: Status{Conditions: conditions}})
	if err != nil {
		return Node{}, err
	}
	return c.patch(ctx, asMetadata, body)
}

func (c *Client) patch(ctx context.Context, accept string, body []byte) (Node, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := c.request(ctx, accept, body)
	if err != nil {
		return Node{}, err
	}
	client, err := c.client()
	if err != nil {
		return Node{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		c.dropConnection()
		var where *url.Error
		if errors.As(err, &where) {
			err = where.Err // the URL is always the same
		}
		return Node{}, err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	answer := io.LimitReader(response.Body, maxResponse)
	if response.StatusCode != http.StatusOK {
		return Node{}, newStatusError(response, answer)
	}
	var node Node
	if err := json.NewDecoder(answer).Decode(&node); err != nil {
		c.dropConnection()
		return Node{}, fmt.Errorf("reading the response: %w", err)
	}
	_, _ = io.Copy(io.Discard, answer) // so that the connection can be used again
	return node, nil
}

func (c *Client) request(ctx context.Context, accept string, body []byte) (*http.Request, error) {
	path := c.connection.server + "/api/v1/nodes/" + url.PathEscape(c.Node) + "/status?fieldManager=readygate-reporter"
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("Content-Type", strategicMerge)
	request.Header.Set("User-Agent", "readygate-reporter/"+version.Version)
	// The request is idempotent: net/http may send it again on a new connection
	// if the API server closed the old one. The header itself is not sent.
	request.Header["X-Idempotency-Key"] = nil
	if c.AsNode {
		request.Header.Set("Impersonate-User", "system:node:"+c.Node)
	}
	token, err := c.connection.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return request, nil
}

// client returns the HTTP client; it keeps one connection open.
func (c *Client) client() (*http.Client, error) {
	if c.http == nil {
		transport, err := c.connection.transport()
		if err != nil {
			return nil, err
		}
		c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // never send the token to another server
		}}
	}
	return c.http, nil
}

// dropConnection closes the connection. The next request opens a new one and reads the certificate files again.
func (c *Client) dropConnection() {
	if c.http != nil {
		c.http.CloseIdleConnections()
		c.http = nil
	}
}

// StatusError is a response of the API server with a status other than 200.
type StatusError struct {
	Code    int
	Message string
	// RetryAfter is the Retry-After header; zero: absent.
	RetryAfter time.Duration
}

func (r *StatusError) Error() string {
	return fmt.Sprintf("the API server returned %d: %s", r.Code, r.Message)
}

func newStatusError(response *http.Response, answer io.Reader) *StatusError {
	data, _ := io.ReadAll(io.LimitReader(answer, 8<<10)) // what there is of it
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(data, &status) != nil || status.Message == "" {
		status.Message = strings.TrimSpace(string(data[:min(len(data), 200)]))
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return &StatusError{
		Code:       response.StatusCode,
		Message:    status.Message,
		RetryAfter: time.Duration(max(seconds, 0)) * time.Second,
	}
}
