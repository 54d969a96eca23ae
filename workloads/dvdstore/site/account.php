<?php
// The shop's books as JSON: what there is of everything, whether what must hold does, and what serves the pages.
declare(strict_types=1);
require __DIR__ . '/shop.php';

header('Content-Type: application/json');
$books = json_decode(ask('SELECT account()')[0]['account'], true);
$kept = function_exists('opcache_get_status') && (opcache_get_status(false)['opcache_enabled'] ?? false);
echo json_encode([...$books, 'php' => PHP_VERSION, 'opcache' => $kept ? 'on' : 'off']), "\n";
