<?php
// The door: log in, or become a customer.
declare(strict_types=1);
require __DIR__ . '/shop.php';

$categories = '';
foreach (ask('SELECT name FROM categories ORDER BY id') as $one) {
    $categories .= '<li>' . text($one['name']) . '</li>';
}
page('home', 'Welcome', <<<HTML
    <h2>Log in</h2>
    <form action="login.php" method="post">
    <label>Name <input name="username" required maxlength="50" autocomplete="username"></label>
    <label>Password <input name="password" type="password" required autocomplete="current-password"></label>
    <button>Log in</button>
    </form>
    <p>No customer yet? <a href="new.php">Become one.</a></p>
    <h2>What there is</h2>
    <ul class="columns">$categories</ul>
    HTML);
