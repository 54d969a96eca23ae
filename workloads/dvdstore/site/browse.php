<?php
// Shows products to buy: the specials of a category, or the results of a full-text search.
declare(strict_types=1);
require __DIR__ . '/shop.php';

// The most products of a page.
const MAX_PRODUCTS = 9;

$by = read_field('by');
$words = read_field('words');
$limit = preg_match('/^[1-9]$/D', read_field('limit')) ? (int) read_field('limit') : MAX_PRODUCTS;
$is_known = in_array($by, ['category', 'title', 'actor'], true);
if (!$is_known || $by === 'category' && !preg_match('/^[0-9]{1,4}$/D', $words)) {
    refuse_request('What are you looking for?', 422, render_search_form());
}
$rows = query_database("SELECT * FROM browse_by_$by(\$1, \$2)", [$words, $limit]);
$lines = '';
foreach (array_map(escape_row(...), $rows) as $product) {
    $lines .= "<tr data-product=\"$product[id]\"><td>$product[title]</td><td>$product[actor]</td>"
        . "<td class=\"money\">$product[price]</td>"
        . "<td><input name=\"quantity[$product[id]]\" type=\"number\" min=\"0\" max=\"3\""
        . " placeholder=\"0\" aria-label=\"How many of $product[title]\"></td></tr>";
}
$list = $lines === '' ? '<p>Nothing was found.</p>' : <<<HTML
    <form action="purchase.php" method="post">
    <table>
    <caption>What was found</caption>
    <thead><tr><th scope="col">Title</th><th scope="col">Actor</th><th scope="col">Price</th>
    <th scope="col">Quantity</th></tr></thead>
    <tbody>$lines</tbody>
    </table>
    <button>Buy</button>
    </form>
    HTML;
$title = $by === 'category' ? 'Specials' : "Found by $by: $words";
print_page('browse', $title, render_search_form() . $list, ['found' => count($rows)]);
