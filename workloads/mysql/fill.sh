#!/bin/bash
# Reads the table and its index once, which brings both into the buffer pool, and says what the server is.
# One JSON object.  Usage: fill.sh ADDRESS PORT
set -euo pipefail

# shellcheck source=workloads/mysql/common.sh
source "${0%/*}/common.sh"

ask "$1" "$2" "
    SELECT SUM(CRC32(CONCAT(c, pad))) FROM sbtest1 FORCE INDEX (PRIMARY) INTO @content;
    SELECT SUM(k) FROM sbtest1 FORCE INDEX (k_1) INTO @index;
    SELECT JSON_OBJECT('server', VERSION(), 'rows', (SELECT COUNT(*) FROM sbtest1 FORCE INDEX (PRIMARY)),
        'rows_of_index', (SELECT COUNT(*) FROM sbtest1 FORCE INDEX (k_1)),
        'content', @content, 'sum_of_index', @index,
        'table_bytes', (SELECT data_length + index_length FROM information_schema.tables
                        WHERE table_schema = DATABASE() AND table_name = 'sbtest1'),
        'buffer_bytes', @@innodb_buffer_pool_size, 'log_bytes', @@innodb_log_file_size,
        'flush_method', @@innodb_flush_method, 'flush_log', @@innodb_flush_log_at_trx_commit,
        'encryption', @@have_ssl, 'max_connections', @@max_connections, 'table_open_cache', @@table_open_cache)"
