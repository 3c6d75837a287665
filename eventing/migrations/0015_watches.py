"""Watch rules and audiences of rendezvous points and of the domain, and alarms."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('eventing', '0014_reports'),
    ]

    operations = [
        migrations.CreateModel(
            name='Alarm',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('rule', models.CharField(max_length=16)),
                ('rp', models.CharField(blank=True, default='', max_length=64)),
                ('kind', models.CharField(max_length=16)),
                ('about', models.CharField(blank=True, default='', max_length=255)),
                ('severity', models.CharField(max_length=8)),
                ('detail', models.CharField(max_length=500)),
                ('values', models.JSONField(default=list)),
                ('link', models.CharField(blank=True, default='', max_length=255)),
                ('since', models.DateTimeField()),
                ('raised_at', models.DateTimeField()),
                ('changed_at', models.DateTimeField()),
                ('cleared_at', models.DateTimeField(null=True)),
                ('cleared_why', models.CharField(blank=True, default='', max_length=255)),
                ('acknowledged_at', models.DateTimeField(null=True)),
                ('acknowledged_by', models.CharField(blank=True, default='', max_length=512)),
                ('note', models.CharField(blank=True, default='', max_length=500)),
            ],
        ),
        migrations.CreateModel(
            name='DomainWatches',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('watch', models.JSONField(default=list)),
                ('version', models.BigIntegerField(default=1)),
                ('changed_at', models.DateTimeField()),
            ],
        ),
        migrations.AddField(
            model_name='rendezvouspoint',
            name='audience',
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name='rendezvouspoint',
            name='watch',
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name='rendezvouspoint',
            name='watched_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddIndex(
            model_name='rendezvouspoint',
            index=models.Index(condition=models.Q(('watched_at', None), _negated=True), fields=['watched_at'], name='rp_watched'),
        ),
        migrations.AddIndex(
            model_name='alarm',
            index=models.Index(condition=models.Q(('cleared_at', None)), fields=['-id'], name='alarm_open'),
        ),
        migrations.AddIndex(
            model_name='alarm',
            index=models.Index(fields=['rp', '-id'], name='alarm_of_rp'),
        ),
        migrations.AddIndex(
            model_name='alarm',
            index=models.Index(condition=models.Q(('cleared_at__isnull', False)), fields=['cleared_at'], name='alarm_by_end'),
        ),
        migrations.AddConstraint(
            model_name='alarm',
            constraint=models.UniqueConstraint(condition=models.Q(('cleared_at', None)), fields=('rule', 'about'), name='alarm_is_open_once'),
        ),
        migrations.AddConstraint(
            model_name='alarm',
            constraint=models.CheckConstraint(condition=models.Q(('severity__in', ['warning', 'critical'])), name='alarm_severity_is_known'),
        ),
        migrations.AddConstraint(
            model_name='alarm',
            constraint=models.CheckConstraint(condition=models.Q(('acknowledged_at__isnull', False), models.Q(('acknowledged_by', ''), ('note', '')), _connector='OR'), name='alarm_acknowledged_or_not'),
        ),
        migrations.AddConstraint(
            model_name='domainwatches',
            constraint=models.CheckConstraint(condition=models.Q(('id', 1)), name='domain_watches_are_one_row'),
        ),
    ]
