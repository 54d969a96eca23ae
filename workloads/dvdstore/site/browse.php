<?php
// Shows products: the specials of a category, or what full-text search finds.  From here they are bought.
declare(strict_types=1);
require __DIR__ . '/shop.php';

const MOST = 9;

$by = field('by');
$words = field('words');
$limit = field('limit');
$most = preg_match('/^[1-9]$/D', $limit) ? (int) $limit : MOST;
if (!in_array($by, ['category', 'title', 'actor'], true) || $by === 'category' && !preg_match('/^[0-9]{1,4}$/D', $words)) {
    page('refused', 'What are you looking for?', search_form(), [], 422);
    exit;
}
$rows = ask("SELECT * FROM browse_by_$by(\$1, \$2)", [$words, $most]);
$found = '';
foreach ($rows as $row) {
    $id = text($row['id']);
    $title = text($row['title']);
    $found .= "<tr data-product=\"$id\"><td>$title</td><td>" . text($row['actor']) . '</td><td class="money">'
        . text($row['price']) . "</td><td><input name=\"quantity[$id]\" type=\"number\" min=\"0\" max=\"3\" placeholder=\"0\""
        . " aria-label=\"How many of $title\"></td></tr>";
}
$list = $found === '' ? '<p>Nothing was found.</p>' : <<<HTML
    <form action="purchase.php" method="post">
    <table>
    <caption>What was found</caption>
    <thead><tr><th scope="col">Title</th><th scope="col">Actor</th><th scope="col">Price</th><th scope="col">Quantity</th></tr></thead>
    <tbody>$found</tbody>
    </table>
    <button>Buy</button>
    </form>
    HTML;
$what = $by === 'category' ? 'Specials' : "Found by $by: $words";
page('browse', $what, search_form() . $list, ['found' => count($rows)]);
