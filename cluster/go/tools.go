//go:build tools

// Keeps the programs that are built out of other modules in go.mod.
package tools

import _ "go.etcd.io/etcd/server/v3"
