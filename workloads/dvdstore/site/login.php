<?php
// Logs a customer in, and shows the last purchases, each with a related title.
declare(strict_types=1);
require __DIR__ . '/shop.php';

$account = [read_field('username'), read_field('password')];
$rows = query_database('SELECT * FROM login($1, $2)', $account);
if (!$rows) {
    refuse_request('Who is that?', 403, '<p>Nobody has that name and password.</p>');
}
['customer' => $number, 'first_name' => $first, 'last_name' => $last] = $rows[0];
remember_customer((int) $number);
$lines = '';
foreach (array_map(escape_row(...), $rows) as $row) {
    if ($row['product'] !== '') {
        $lines .= "<tr data-product=\"$row[product]\"><td>$row[title]</td><td>$row[actor]</td>"
            . "<td>$row[related]</td></tr>";
    }
}
$purchases = $lines === '' ? '<p>You have not bought anything yet.</p>' : <<<HTML
    <table>
    <caption>What you bought last</caption>
    <thead><tr><th scope="col">Title</th><th scope="col">Actor</th>
    <th scope="col">You may also like</th></tr></thead>
    <tbody>$lines</tbody>
    </table>
    HTML;
$body = render_search_form() . $purchases;
print_page('login', "Hello, $first $last", $body, ['customer' => $number]);
