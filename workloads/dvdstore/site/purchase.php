<?php
// Buys what was chosen, in one transaction: all of it, or nothing where there is too little stock.
declare(strict_types=1);
require __DIR__ . '/shop.php';

$buyer = customer();
if ($buyer === 0 || $_SERVER['REQUEST_METHOD'] !== 'POST') {
    page('refused', 'Please log in', '', [], 403);
    exit;
}
$wanted = array_filter(array_map('intval', is_array($_POST['quantity'] ?? null) ? $_POST['quantity'] : []));
if (!$wanted || min($wanted) < 0 || max($wanted) > 3 || array_filter(array_keys($wanted), is_string(...))) {
    page('refused', 'That cannot be ordered', search_form(), [], 422);
    exit;
}
$rows = ask('SELECT * FROM purchase($1, $2, $3)', [$buyer, numbers(array_keys($wanted)), numbers($wanted)]);
if (!$rows) {
    page('purchase', 'Not enough in stock', '<p>Nothing was bought: of one title there is too little left.</p>' . search_form(), ['order' => 0]);
    exit;
}
$lines = '';
foreach ($rows as $row) {
    $lines .= '<tr><td>' . text($row['title']) . '</td><td class="money">' . text($row['quantity']) . '</td><td class="money">'
        . text($row['price']) . '</td></tr>';
}
['order_id' => $order, 'net' => $net, 'tax' => $tax, 'total' => $total] = array_map(text(...), $rows[0]);
page('purchase', 'Thank you', <<<HTML
    <p>Your order has the number $order.</p>
    <table>
    <caption>What you bought</caption>
    <thead><tr><th scope="col">Title</th><th scope="col">Quantity</th><th scope="col">Price</th></tr></thead>
    <tbody>$lines</tbody>
    <tfoot>
    <tr><th scope="row" colspan="2">Net</th><td class="money">$net</td></tr>
    <tr><th scope="row" colspan="2">Tax</th><td class="money">$tax</td></tr>
    <tr><th scope="row" colspan="2">Total</th><td class="money">$total</td></tr>
    </tfoot>
    </table>
    HTML . search_form(), ['order' => $order, 'net' => $net, 'tax' => $tax, 'total' => $total]);
