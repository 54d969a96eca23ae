<?php
// What the application shows: pages that only read.
declare(strict_types=1);

const EVENTS_OF_A_PAGE = 10;
const EVENT_IN_LIST = 'SELECT socialeventid, title, summary, thumbnail, takes_place, city FROM socialevent NATURAL JOIN address';

/** The newest of so many events. */
function list_of_events(array $events, int $all): string
{
    $items = '';
    foreach ($events as $event) {
        $items .= '<li><a href="/events/' . $event['socialeventid'] . '"><img src="/files/' . h($event['thumbnail'])
            . '" alt=""></a><div><a href="/events/' . $event['socialeventid'] . '">' . h($event['title'])
            . '</a><br>' . h($event['takes_place']) . ', ' . h($event['city']) . '<br>' . h($event['summary'])
            . "</div></li>\n";
    }
    return "<p>$all events</p>\n<ul class=\"events\">\n$items</ul>\n";
}

/** Tags as links; those of most events are what the first page shows. */
function list_of_tags(array $tags): string
{
    $items = array_map(fn ($tag) => '<li><a href="/search?tag=' . urlencode($tag['tag']) . '">' . h($tag['tag'])
        . '</a> (' . $tag['refcount'] . ')</li>', $tags);
    return '<ul class="tags">' . implode("\n", $items) . "</ul>\n";
}

/** People as links with their pictures. */
function list_of_people(array $people): string
{
    $items = array_map(fn ($person) => '<li><a href="/people/' . $person['personid'] . '"><img src="/files/'
        . h($person['thumbnail']) . '" alt=""><br>' . h($person['username']) . '</a></li>', $people);
    return '<ul class="people">' . implode("\n", $items) . "</ul>\n";
}

/** The newest events and the tags of most events. */
function home_page(): void
{
    $events = rows(EVENT_IN_LIST . ' ORDER BY created DESC, socialeventid DESC LIMIT ?', EVENTS_OF_A_PAGE);
    $all = row('SELECT COUNT(*) AS count FROM socialevent')['count'];
    $tags = rows('SELECT tag, refcount FROM socialeventtag WHERE refcount > 0 ORDER BY refcount DESC, tag LIMIT 50');
    page('Events', list_of_events($events, $all) . "<h2>Tags</h2>\n" . list_of_tags($tags));
}

/** The events that have a tag. */
function search_page(): void
{
    $name = trim((string)($_GET['tag'] ?? ''));
    $tag = row('SELECT socialeventtagid, refcount FROM socialeventtag WHERE tag = ?', $name);
    $events = rows(EVENT_IN_LIST . ' JOIN socialeventtag_socialevent USING (socialeventid) WHERE socialeventtagid = ?'
        . ' ORDER BY created DESC, socialeventid DESC LIMIT ?', $tag['socialeventtagid'] ?? 0, EVENTS_OF_A_PAGE);
    $form = '<form action="/search"><label>Tag <input name="tag" value="' . h($name) . '"></label> <button>Search</button></form>';
    page("Events with the tag $name", $form . list_of_events($events, $tag['refcount'] ?? 0));
}

/** An event with its place, tags, attendees and comments. */
function event_page(int $id): void
{
    $event = row(
        'SELECT socialevent.*, address.*, username FROM socialevent NATURAL JOIN address '
            . 'JOIN person ON personid = submitterid WHERE socialeventid = ?',
        $id
    ) ?? throw new Refused('there is no such event', 404);
    $tags = rows('SELECT tag, refcount FROM socialeventtag NATURAL JOIN socialeventtag_socialevent '
        . 'WHERE socialeventid = ? ORDER BY tag', $id);
    $attendees = rows('SELECT personid, username, thumbnail FROM person NATURAL JOIN person_socialevent '
        . 'WHERE socialeventid = ? ORDER BY personid', $id);
    $comments = rows('SELECT username, rating, comment FROM comments_rating NATURAL JOIN person '
        . 'WHERE socialeventid = ? ORDER BY commentid', $id);
    $said = '';
    foreach ($comments as $comment) {
        $stars = str_repeat('<img class="star" src="/static/star.svg" alt="*">', $comment['rating']);
        $said .= "<p>$stars " . h($comment['username']) . ': ' . h($comment['comment']) . "</p>\n";
    }
    $attending = in_array(me(), array_column($attendees, 'personid'), true);
    $attend = match (true) {
        me() === null => '<p><a href="/login">Log in to attend</a></p>',
        $attending => '<p class="said">You attend</p>',
        default => "<form method=\"post\" action=\"/events/$id/attend\"><button>Attend</button></form>",
    };
    $address = implode(', ', array_filter([$event['street1'], $event['street2'], $event['city'], $event['state'],
        $event['zip'], $event['country']], fn ($part) => $part !== ''));
    page($event['title'], '<img class="picture" src="/files/' . h($event['image']) . '" alt="">'
        . '<p>' . h($event['takes_place']) . ', posted by <a href="/people/' . $event['submitterid'] . '">'
        . h($event['username']) . '</a></p>'
        . '<p>' . h($event['summary']) . '</p><p>' . h($event['description']) . '</p>'
        . '<p><a href="/files/' . h($event['literature']) . '">Read more</a></p>'
        . '<address>' . h($address) . '<br>' . h($event['telephone']) . '</address>'
        . '<p><img class="map" src="/static/map.svg" alt="Map"> <span class="place">' . $event['latitude'] . ' '
        . $event['longitude'] . "</span></p>\n"
        . "<h2>Tags</h2>\n" . list_of_tags($tags)
        . '<h2>' . count($attendees) . " attend</h2>\n$attend" . list_of_people($attendees)
        . "<h2>Comments</h2>\n$said");
}

/** A person with friends and the events that they posted. */
function person_page(int $id): void
{
    $person = row('SELECT person.*, city, state, country FROM person NATURAL JOIN address WHERE personid = ?', $id)
        ?? throw new Refused('there is no such person', 404);
    $friends = rows('SELECT person.personid, username, thumbnail FROM person_person JOIN person ON person.personid = friendid '
        . 'WHERE person_person.personid = ? ORDER BY friendid', $id);
    $events = rows(EVENT_IN_LIST . ' WHERE submitterid = ? ORDER BY created DESC, socialeventid DESC LIMIT ?', $id, EVENTS_OF_A_PAGE);
    $all = row('SELECT COUNT(*) AS count FROM socialevent WHERE submitterid = ?', $id)['count'];
    page($person['username'], '<img class="picture" src="/files/' . h($person['image']) . '" alt="">'
        . '<p>' . h($person['firstname'] . ' ' . $person['lastname']) . '<br>' . h($person['email']) . '<br>'
        . h($person['telephone']) . '<br>' . h($person['timezone']) . '</p>'
        . '<p>' . h($person['summary']) . '</p>'
        . '<address>' . h("$person[city], $person[state], $person[country]") . "</address>\n"
        . "<h2>Friends</h2>\n" . list_of_people($friends)
        . "<h2>Posted</h2>\n" . list_of_events($events, $all));
}

/** Whether a name is taken, as the form for joining asks. */
function taken_answer(): void
{
    header('Content-Type: text/plain; charset=utf-8');
    echo row('SELECT 1 FROM person WHERE username = ?', (string)($_GET['username'] ?? '')) === null ? "free\n" : "taken\n";
}

/** How much there is, and how much of it breaks a rule that should always hold: what a run is checked by. */
function status_answer(): void
{
    $counts = [];
    foreach (['address', 'person', 'person_person', 'socialevent', 'socialeventtag', 'socialeventtag_socialevent',
        'person_socialevent', 'comments_rating'] as $table) {
        $counts[$table] = row("SELECT COUNT(*) AS count FROM $table")['count'];
    }
    $counts['broken'] = row('SELECT
        (SELECT COUNT(*) FROM socialeventtag AS tag WHERE refcount <>
            (SELECT COUNT(*) FROM socialeventtag_socialevent AS had WHERE had.socialeventtagid = tag.socialeventtagid))
        + (SELECT COUNT(*) FROM socialevent AS event WHERE NOT EXISTS
            (SELECT 1 FROM socialeventtag_socialevent AS had WHERE had.socialeventid = event.socialeventid))
        + (SELECT COUNT(*) FROM id_gen WHERE gen_value <> CASE gen_key
            WHEN \'address\' THEN (SELECT MAX(addressid) FROM address)
            WHEN \'person\' THEN (SELECT MAX(personid) FROM person)
            WHEN \'socialevent\' THEN (SELECT MAX(socialeventid) FROM socialevent)
            WHEN \'socialeventtag\' THEN (SELECT MAX(socialeventtagid) FROM socialeventtag) END)
        AS count')['count'];
    header('Content-Type: application/json');
    echo json_encode($counts), "\n";
}
