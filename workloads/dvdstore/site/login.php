<?php
// Logs a customer in, and shows what was bought last, with a related title of each.
declare(strict_types=1);
require __DIR__ . '/shop.php';

$rows = ask('SELECT * FROM login($1, $2)', [field('username'), field('password')]);
if (!$rows) {
    page('refused', 'Who is that?', '<p>Nobody has that name and password.</p>', [], 403);
    exit;
}
$number = (int) $rows[0]['customer'];
remember($number);
$bought = '';
foreach ($rows as $row) {
    if ($row['product'] !== null) {
        $bought .= '<tr data-product="' . text($row['product']) . '"><td>' . text($row['title']) . '</td><td>'
            . text($row['actor']) . '</td><td>' . text($row['related']) . '</td></tr>';
    }
}
$last = $bought === '' ? '<p>You have not bought anything yet.</p>' : <<<HTML
    <table>
    <caption>What you bought last</caption>
    <thead><tr><th scope="col">Title</th><th scope="col">Actor</th><th scope="col">You may also like</th></tr></thead>
    <tbody>$bought</tbody>
    </table>
    HTML;
page('login', "Hello, {$rows[0]['first_name']} {$rows[0]['last_name']}", search_form() . $last, ['customer' => $number]);
