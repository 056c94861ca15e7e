"""A small catalog written for these tests, with typical servers, and questions with the tools that answer them.

The questions were written before any ranking was seen. Rules of the search may be tuned with them, but never for single
questions.
"""

from __future__ import annotations

from typing import Any

from trayapp.catalog.search.index import Entry

# A server, then one line per tool: name | description | parameters (`!` required, `#` integer, `?` boolean, `[]` list)
SHELF = """
github:
create_issue | Open a new issue in a repository | owner! repo! title! body labels[] assignees[]
list_issues | List issues of a repository with filtering by state and label | owner! repo! state labels[] page#
get_issue | Get the details of one issue | owner! repo! issue_number#!
add_issue_comment | Add a comment to an issue | owner! repo! issue_number#! body!
update_issue | Update an existing issue: title, body, state, labels | owner! repo! issue_number#! title body state
search_issues | Search for issues and pull requests across repositories | q! sort order per_page#
create_pull_request | Create a new pull request | owner! repo! title! head! base! body draft?
merge_pull_request | Merge a pull request | owner! repo! pull_number#! merge_method
get_pull_request_files | Get the list of files changed in a pull request | owner! repo! pull_number#!
create_pull_request_review | Create a review on a pull request | owner! repo! pull_number#! body! event! comments[]
search_repositories | Search for GitHub repositories | query! page# per_page#
create_repository | Create a new repository in your account | name! description private?
fork_repository | Fork a repository to your account or an organization | owner! repo! organization
get_file_contents | Get the contents of a file or directory of a repository | owner! repo! path! branch
create_or_update_file | Create or update a single file in a repository | owner! repo! path! content! message! branch!
push_files | Push multiple files in a single commit | owner! repo! branch! files[]! message!
create_branch | Create a new branch in a repository | owner! repo! branch! from_branch
list_commits | Get list of commits of a branch | owner! repo! sha page#
search_code | Search for code across repositories | q! order page#
list_workflow_runs | List runs of an Actions workflow | owner! repo! workflow_id! status
rerun_workflow | Re-run a workflow run | owner! repo! run_id#!
slack:
slack_list_channels | List public channels in the workspace with pagination | limit# cursor
slack_post_message | Post a new message to a channel | channel_id! text!
slack_reply_to_thread | Reply to a specific message thread | channel_id! thread_ts! text!
slack_add_reaction | Add a reaction emoji to a message | channel_id! timestamp! reaction!
slack_get_channel_history | Get recent messages from a channel | channel_id! limit#
slack_get_thread_replies | Get all replies in a message thread | channel_id! thread_ts!
slack_get_users | Get a list of all users in the workspace with their basic profile | cursor limit#
slack_get_user_profile | Get detailed profile information for a specific user | user_id!
notion:
API-post-search | Search by title among pages and databases shared with the integration | query sort filter
API-retrieve-a-page | Retrieve a page by its identifier | page_id!
API-post-page | Create a page under a parent page or in a database | parent! properties! children[]
API-patch-block-children | Append block children | block_id! children[]!
API-post-database-query | Query a database with filters and sorts | database_id! filter sorts[]
API-create-a-comment | Create a comment on a page or discussion | parent! rich_text[]!
linear:
list_projects | List projects in the user's workspace | team limit#
create_ticket | Create a new Linear issue | title! team! description assignee priority#
list_my_issues | List issues assigned to the current user | limit#
get_team | Retrieve details of a specific team | query!
list_cycles | Retrieve cycles of a specific team | teamId! type
sentry:
find_organizations | Find organizations that the user has access to |
get_issue_details | Get detailed information about an error, with stack trace and breadcrumbs | issueUrl! org
search_errors | Query events with crashes and exceptions using natural language | organizationSlug! query! limit#
update_error_status | Resolve, ignore or reopen an error | issueUrl! status! assignedTo
create_dsn | Create an additional client key for a project | organizationSlug! projectSlug! name!
postgres:
query | Run a read-only SQL query | sql!
list_tables | List the tables of a schema with row counts | schema
describe_table | Get the columns, types and indexes of a table | table! schema
explain_query | Show the execution plan of a statement and its cost | sql! analyze?
stripe:
create_customer | Create a customer in Stripe | name! email
list_customers | Fetch a list of customers | limit# email
create_payment_link | Create a payment link for a price | price! quantity#!
create_invoice | Create an invoice for a customer | customer! days_until_due#
finalize_invoice | Finalize a draft invoice | invoice!
create_refund | Refund a payment intent | payment_intent! amount# reason
list_subscriptions | List all subscriptions | customer status limit#
cancel_subscription | Cancel a subscription | subscription!
retrieve_balance | Retrieve the balance of the account |
create_coupon | Create a coupon for a discount | name! percent_off# amount_off#
gmail:
search_emails | Search emails using Gmail query syntax | query! maxResults#
read_email | Retrieve the content of a specific email | messageId!
send_email | Send a new email with optional attachments | to[]! subject! body! cc[] attachments[]
draft_email | Draft a new email | to[]! subject! body!
modify_email | Modify labels of an email, move it to another folder | messageId! addLabelIds[] removeLabelIds[]
delete_email | Permanently delete an email | messageId!
download_attachment | Download an attachment to a location on disk | messageId! attachmentId! savePath
create_filter | Create a filter rule for incoming mail | criteria! action!
google-calendar:
list-events | List events of one or more calendars in a time range | calendarId! timeMin timeMax
create-event | Create a new calendar event with attendees and reminders | summary! start! end! attendees[] location
update-event | Update an existing event, its time or its guests | eventId! summary start end
delete-event | Delete a calendar event | eventId! calendarId!
get-freebusy | Query free and busy information for calendars | timeMin! timeMax! calendars[]!
respond-to-event | Accept, decline or tentatively accept an invitation | eventId! response!
jira:
jira_search | Search issues using JQL | jql! fields limit#
jira_create_issue | Create an issue, with epic link or parent | project_key! summary! issue_type! description
jira_transition_issue | Move an issue to a new status of its workflow | issue_key! transition_id!
jira_add_worklog | Add a worklog entry to an issue | issue_key! time_spent! comment
jira_get_sprint_issues | Get the issues of a sprint | sprint_id!
confluence_get_page | Get the content of a wiki page by ID or title | page_id title space_key
confluence_create_page | Create a new wiki page | space_key! title! content!
kubernetes:
kubectl_get | Get or list resources by type, name and namespace | resourceType! name namespace
kubectl_apply | Apply a YAML manifest | manifest! namespace dryRun?
kubectl_logs | Get logs of pods, deployments or jobs | resourceType! name! namespace tail#
kubectl_scale | Scale a deployment to a number of replicas | name! replicas#! namespace
kubectl_rollout | Manage the rollout of a deployment: restart, undo, status | subCommand! name! namespace
kubectl_delete | Delete resources | resourceType! name! namespace
exec_in_pod | Execute a command in a pod or container | name! command! container
port_forward | Forward a local port to a pod | resourceName! localPort#! targetPort#!
helm_install | Install a Helm chart | name! chart! namespace values
brave-search:
brave_web_search | Web search with the Brave API, for general queries, news and online content | query! count# offset#
brave_local_search | Searches for local businesses and places | query! count#
firecrawl:
firecrawl_scrape | Scrape content from a single URL | url! formats[] onlyMainContent?
firecrawl_crawl | Start an asynchronous crawl of a website with all its pages | url! maxDepth# limit#
firecrawl_extract | Extract structured information from pages with a schema | urls[]! prompt schema
figma:
get_figma_data | Get layout information about a file or node | fileKey! nodeId depth#
download_figma_images | Download SVG and PNG images used in a file | fileKey! nodes[]! localPath!
aws-s3:
ListBuckets | List all buckets of the account | prefix
GetObject | Retrieve an object from a bucket | bucket! key!
PutObject | Upload an object to a bucket | bucket! key! body!
CreatePresignedUrl | Make a temporary link to an object | bucket! key! expiresIn#
cloudflare:
dns_records_list | List DNS records of a zone | zoneId!
dns_record_create | Add a DNS record to a zone | zoneId! type! name! content! ttl#
worker_deploy | Deploy a Worker script | name! script!
kv_put | Store a value under a key in a namespace | namespaceId! key! value!
cache_purge | Purge cached files of a zone | zoneId! files[]
grafana:
search_dashboards | Search for dashboards by title | query
query_prometheus | Query a Prometheus datasource with PromQL | datasourceUid! expr! startTime! endTime
query_loki_logs | Query log lines with LogQL | datasourceUid! logql! limit#
list_alert_rules | List alert rules and whether they fire | limit# page#
list_incidents | List incidents | status limit#
get_oncall_shift | Get who is on call in a schedule shift | shiftId!
spotify:
searchSpotify | Search for tracks, albums, artists or playlists | query! type! limit#
playMusic | Start playing a track, album, artist or playlist | uri! deviceId
pausePlayback | Pause playback on the active device | deviceId
addTracksToPlaylist | Add tracks to a playlist | playlistId! trackIds[]!
setVolume | Set the loudness of the active device in percent | volumePercent#!
home-assistant:
get_entity | Get the state of an entity | entity_id!
call_service | Call any service, such as switching a light or a heater | domain! service! data
list_automations | List the automations of the house |
shopify:
get-products | Get all products or search by title | searchTitle limit#
update-product-stock | Change the inventory quantity of a product | productId! quantity#!
get-orders | Get orders with filtering | status limit#
fulfill-order | Mark an order as shipped with a tracking number | orderId! trackingNumber
mongodb:
find | Run a find query against a collection | database! collection! filter limit#
aggregate | Run an aggregation pipeline | database! collection! pipeline[]!
insert-many | Insert documents into a collection | database! collection! documents[]!
collection-indexes | Describe the indexes of a collection | database! collection!
obsidian:
obsidian_append_content | Append content to a new or existing note in the vault | filepath! content!
obsidian_get_file_contents | Return the content of a single note of the vault | filepath!
obsidian_simple_search | Search for text in all notes of the vault | query! context_length#
maps:
maps_directions | Get directions between two points | origin! destination! mode
maps_geocode | Convert an address into coordinates | address!
maps_distance_matrix | Calculate travel distance and time for several origins | origins[]! destinations[]!
maps_search_places | Search for places using a text query | query! radius#
translate:
translate_text | Translate text into another language | text! target_lang! source_lang
get_languages | Languages that can be translated from and to | type
todoist:
todoist_create_task | Create a new task with an optional due date | content! due_string priority#
todoist_get_tasks | Get a list of tasks with filters | project_id filter
todoist_complete_task | Mark a task as complete | task_name!
whatsapp:
send_message | Send a WhatsApp message to a person or group | recipient! message!
list_chats | Get chats matching criteria | query limit#
search_contacts | Search contacts by name or phone number | query!
redis:
hset | Set a field in a hash stored at key with an optional expiry | name! key! value! expire_seconds#
lpush | Push a value onto the left of a list | name! value!
delete | Delete a key | key!
elevenlabs:
text_to_speech | Convert text to speech with a given voice and save the audio | text! voice_name output_directory
speech_to_text | Transcribe speech from an audio file | input_file_path! language_code
"""

QUESTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("file a bug report", ("create_issue", "jira_create_issue", "create_ticket")),
    ("which issues are still open", ("list_issues", "search_issues", "list_my_issues")),
    ("leave a comment on the issue", ("add_issue_comment",)),
    ("close the issue", ("update_issue", "jira_transition_issue")),
    ("propose my changes for review", ("create_pull_request", "create_pull_request_review")),
    ("what files does this PR touch", ("get_pull_request_files",)),
    ("approve a pull request", ("create_pull_request_review", "merge_pull_request")),
    ("make a copy of somebody's repo in my account", ("fork_repository",)),
    ("commit several files at once", ("push_files",)),
    ("did the build pass", ("list_workflow_runs",)),
    ("run the failed CI job again", ("rerun_workflow",)),
    ("who changed this branch recently", ("list_commits",)),
    ("tell the team in the general channel that we are done", ("slack_post_message",)),
    ("answer in the thread", ("slack_reply_to_thread",)),
    ("react with a thumbs up emoji", ("slack_add_reaction",)),
    ("what did people write in the channel today", ("slack_get_channel_history",)),
    ("list everybody in the workspace", ("slack_get_users",)),
    ("look up a page in notion", ("API-post-search", "API-retrieve-a-page")),
    ("add a paragraph to a notion page", ("API-patch-block-children",)),
    ("what am I supposed to work on", ("list_my_issues", "todoist_get_tasks")),
    ("show the stacktrace of the crash", ("get_issue_details",)),
    ("mark this exception as resolved", ("update_error_status",)),
    ("how many users signed up last week according to the database", ("query",)),
    ("which columns has the orders table", ("describe_table",)),
    ("why is this select statement slow", ("explain_query",)),
    ("give the customer his money back", ("create_refund",)),
    ("bill a client", ("create_invoice",)),
    ("end a customer's subscription", ("cancel_subscription",)),
    ("how much money is in our account", ("retrieve_balance",)),
    ("a link where the buyer can pay", ("create_payment_link",)),
    ("20 percent discount code", ("create_coupon",)),
    ("find the mail from my landlord about the heating", ("search_emails",)),
    ("write an e-mail to Anna and attach the report", ("send_email", "draft_email")),
    ("save the attachment of the message", ("download_attachment",)),
    ("what meetings do I have tomorrow", ("list-events",)),
    ("schedule a meeting with Tom on Friday at 10", ("create-event",)),
    ("when are all of us free", ("get-freebusy",)),
    ("decline the invitation", ("respond-to-event",)),
    ("move the appointment to next week", ("update-event",)),
    ("log two hours of work on the ticket", ("jira_add_worklog",)),
    ("what is left in this sprint", ("jira_get_sprint_issues",)),
    ("write a wiki page about our release process", ("confluence_create_page",)),
    ("why does the pod crash, show its output", ("kubectl_logs",)),
    ("restart the deployment", ("kubectl_rollout",)),
    ("run three replicas of the service", ("kubectl_scale",)),
    ("open a shell in the container", ("exec_in_pod",)),
    ("deploy the manifest to the cluster", ("kubectl_apply",)),
    ("restaurants and shops nearby", ("brave_local_search", "maps_search_places")),
    ("google something", ("brave_web_search",)),
    ("crawl a whole web site", ("firecrawl_crawl",)),
    ("get the text of a web page", ("firecrawl_scrape",)),
    ("export the pictures of the design", ("download_figma_images",)),
    ("upload a file to the bucket", ("PutObject",)),
    ("share a file from s3 for one day", ("CreatePresignedUrl",)),
    ("point the domain to a new server", ("dns_record_create",)),
    ("clear the cdn cache", ("cache_purge",)),
    ("cpu usage during the last hour", ("query_prometheus",)),
    ("are any alarms going off", ("list_alert_rules",)),
    ("who is on call tonight", ("get_oncall_shift",)),
    ("play some jazz", ("playMusic", "searchSpotify")),
    ("stop the music", ("pausePlayback",)),
    ("make it louder", ("setVolume",)),
    ("turn off the lights in the kitchen", ("call_service",)),
    ("is the front door locked", ("get_entity",)),
    ("how many do we have left in the warehouse", ("update-product-stock", "get-products")),
    ("the parcel has been sent, update the order", ("fulfill-order",)),
    ("add records to the mongo collection", ("insert-many",)),
    ("search my notes for the recipe", ("obsidian_simple_search",)),
    ("how far is it from Bern to Zurich by car", ("maps_directions", "maps_distance_matrix")),
    ("latitude and longitude of a street address", ("maps_geocode",)),
    ("what does this sentence mean in French", ("translate_text",)),
    ("remind me to call the dentist on Monday", ("todoist_create_task", "create-event")),
    ("tick off the shopping", ("todoist_complete_task",)),
    ("text my brother that I am late", ("send_message",)),
    ("phone number of a friend", ("search_contacts",)),
    ("read this text aloud", ("text_to_speech",)),
    ("transcript of the recorded interview", ("speech_to_text",)),
    ("remove a key from the cache", ("delete",)),
)

_TYPES: dict[str, dict[str, Any]] = {
    "#": {"type": "integer"}, "?": {"type": "boolean"}, "[]": {"type": "array", "items": {"type": "string"}}
}  # fmt: skip


def entries() -> dict[str, list[Entry]]:
    """Return the shelf's tools by server."""
    servers: dict[str, list[Entry]] = {}
    for line in filter(None, SHELF.splitlines()):
        if line.endswith(":"):
            server = line[:-1]
        else:
            tool = _tool(line)
            servers.setdefault(server, []).append(Entry(server, tool["name"], f"{server}_{tool['name']}", tool))
    return servers


def _tool(line: str) -> dict[str, Any]:
    name, description, parameters = (part.strip() for part in line.split("|"))
    properties = {word.rstrip("!#?[]"): _type(word.rstrip("!")) for word in parameters.split()}
    required = [word.rstrip("!#?[]") for word in parameters.split() if word.endswith("!")]
    schema = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": description, "inputSchema": schema}


def _type(word: str) -> dict[str, Any]:
    return next((kind for mark, kind in _TYPES.items() if word.endswith(mark)), {"type": "string"})
