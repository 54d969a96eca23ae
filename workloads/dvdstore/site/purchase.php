<?php
// Buys products in one transaction: all of them, or nothing if one has too little stock.
declare(strict_types=1);
require __DIR__ . '/shop.php';

$buyer = get_customer();
if ($buyer === 0 || $_SERVER['REQUEST_METHOD'] !== 'POST') {
    refuse_request('Please log in', 403);
}
// The quantities of the form, by product.
$basket = $_POST['quantity'] ?? null;
$basket = array_filter(array_map('intval', is_array($basket) ? $basket : []));
$has_names = array_filter(array_keys($basket), is_string(...));
if (!$basket || $has_names || min($basket) < 0 || max($basket) > 3) {
    refuse_request('That cannot be ordered', 422, render_search_form());
}
$products = format_array(array_keys($basket));
$quantities = format_array($basket);
$rows = query_database('SELECT * FROM purchase($1, $2, $3)', [$buyer, $products, $quantities]);
if (!$rows) {
    $reason = '<p>Nothing was bought: of one title there is too little left.</p>';
    print_page('purchase', 'Not enough in stock', $reason . render_search_form(), ['order' => 0]);
    exit;
}
$lines = '';
foreach (array_map(escape_row(...), $rows) as $row) {
    $lines .= "<tr><td>$row[title]</td><td class=\"money\">$row[quantity]</td>"
        . "<td class=\"money\">$row[price]</td></tr>";
}
['order_id' => $order, 'net' => $net, 'tax' => $tax, 'total' => $total] = escape_row($rows[0]);
$results = ['order' => $order, 'net' => $net, 'tax' => $tax, 'total' => $total];
print_page('purchase', 'Thank you', <<<HTML
    <p>Your order has the number $order.</p>
    <table>
    <caption>What you bought</caption>
    <thead><tr><th scope="col">Title</th><th scope="col">Quantity</th>
    <th scope="col">Price</th></tr></thead>
    <tbody>$lines</tbody>
    <tfoot>
    <tr><th scope="row" colspan="2">Net</th><td class="money">$net</td></tr>
    <tr><th scope="row" colspan="2">Tax</th><td class="money">$tax</td></tr>
    <tr><th scope="row" colspan="2">Total</th><td class="money">$total</td></tr>
    </tfoot>
    </table>
    HTML . render_search_form(), $results);
