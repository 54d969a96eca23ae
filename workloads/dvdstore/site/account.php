<?php
// Shows the shop's books as JSON: counts and faults of the database, and facts of the servers.
// parse.py reads the keys.
declare(strict_types=1);
require __DIR__ . '/shop.php';

header('Content-Type: application/json');
$books = json_decode(query_database('SELECT account()')[0]['account'], true);
$has_cache = function_exists('opcache_get_status')
    && (opcache_get_status(false)['opcache_enabled'] ?? false);
echo json_encode([...$books, 'php' => PHP_VERSION, 'opcache' => $has_cache ? 'on' : 'off']), "\n";
